// What this host needs of memory_plane.contracts: names are wire format and are never renamed.
// Input keys are snake_case, as in the Python models.

export const QUEUE = 'memory';
export const INGEST = 'IngestWorkflow';

export interface IngestInput {
  tenant_id: string;
  principal_id: string;
  document: { title: string; text: string; external_ref?: string; share?: { tenant: boolean } };
}

export interface IngestResult {
  document_id: string;
  version_id: string;
  status: 'captured' | 'noop';
  chunks: number;
  embedded: number;
  failed: number;
  claims: number;
  degraded: string[] | null;
}

import { executeChild, workflowInfo } from '@temporalio/workflow';
import { INGEST, IngestInput, IngestResult, QUEUE } from './memory';

/** Remembers what was said, and ends when it can be found by meaning. */
export async function rememberNote(tenant: string, principal: string, title: string, text: string): Promise<IngestResult> {
  const input: IngestInput = {
    tenant_id: tenant,
    principal_id: principal,
    document: { title, text, external_ref: `typescript-host/${workflowInfo().workflowId}` },
  };
  return executeChild<(input: IngestInput) => Promise<IngestResult>>(INGEST, {
    args: [input],
    taskQueue: QUEUE,
    workflowId: `memory-ingest/${tenant}/${workflowInfo().workflowId}`,
  });
}

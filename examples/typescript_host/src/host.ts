import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { rememberNote } from './workflows';

async function main(): Promise<void> {
  const address = process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233';
  const namespace = process.env.TEMPORAL_NAMESPACE ?? 'default';
  const tenant = process.env.MEMORY_TENANT ?? 'dev';
  const principal = process.env.MEMORY_PRINCIPAL ?? 'dev';
  const taskQueue = 'typescript-host';

  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    namespace,
    taskQueue,
    workflowsPath: require.resolve('./workflows'),
  });
  const client = new Client({ connection: await Connection.connect({ address }), namespace });

  await worker.runUntil(async () => {
    const result = await client.workflow.execute(rememberNote, {
      taskQueue,
      workflowId: `typescript-host-${randomUUID()}`,
      args: [tenant, principal, 'The kettle', 'The kettle in the kitchen is blue; it was bought in May.'],
    });
    console.log(JSON.stringify(result));
  });
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

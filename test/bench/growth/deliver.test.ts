import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { deliver } from './deliver.ts';

it('the benchmark of growth delivers by the worker’s statements', async () => {
  const { database, owner, make } = await setupDatabase();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId });
  await make.grant({ professional });
  await owner.pool.query('update receiver set concurrency = 5'); // so that its row changes
  const worker = new Client({ connectionString: database.urls.worker });
  await worker.connect();
  onTestFinished(() => worker.end());

  expect(await deliver(worker, 1)).toBe(1);

  const { rows } = await owner.pool.query('select state, concurrency from delivery cross join receiver');
  expect(rows).toEqual([{ state: 'delivered', concurrency: 10 }]);
});

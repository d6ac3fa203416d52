import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createTestDatabase } from '#test/database.ts';

const child = fileURLToPath(new URL('./large-child.ts', import.meta.url));

async function importLarge(databaseUrl: string, families: number) {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--max-old-space-size=64',
    child,
    databaseUrl,
    `${families}`,
  ]);
  return JSON.parse(stdout) as { grants: object; days: object; peakMb: number; lines: number };
}

describe('a file with 100,000 grants in one organization', () => {
  it('is imported with a heap of 64 MB in any order, in 300 MB and the memory of 2,000 grants, and reports its progress', async () => {
    const database = await createTestDatabase();
    const small = await importLarge(database.ownerUrl, 2_000);
    const large = await importLarge(database.ownerUrl, 100_000);
    expect(large.grants).toMatchObject({ inserted: 100_000 });
    expect(large.peakMb - small.peakMb).toBeLessThan(100);
    expect(large.peakMb).toBeLessThan(300);
    expect(large.lines).toBeGreaterThan(6);

    console.log(`peak memory: 2,000 grants ${small.peakMb} MB, 100,000 grants ${large.peakMb} MB`);
    await database.drop();
  }, 840_000);
});

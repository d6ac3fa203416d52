import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

it('SECURITY.md names an existing test for each property', () => {
  const document = readFileSync(path.join(import.meta.dirname, '../../SECURITY.md'), 'utf8');
  const [properties = ''] = document.split('## What each process may connect to');
  const rows = properties.split('\n').filter((line) => line.startsWith('| ') && !/^\| (Property|---)/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) {
    const tests = [...(row.split('|').at(-2) ?? '').matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? '');
    expect(tests, row).not.toEqual([]);
    for (const file of tests)
      expect(existsSync(path.join(import.meta.dirname, '..', file)), `${file}: ${row}`).toBe(true);
  }
});

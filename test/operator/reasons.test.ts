import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { reasons } from '../../apps/operator/kube/reasons.ts';

const guide = path.join(import.meta.dirname, '../../docs/operations');
const pages = ['run-the-operator.md', 'webhook-subscriptions.md'];

it('every reason of a condition has one row in the guide, and the guide lists no other', () => {
  const text = pages.map((name) => readFileSync(path.join(guide, name), 'utf8')).join('\n');
  const rows = [...text.matchAll(/^\| `(\w+)` \| [^|]+ \|$/gm)].map(([, reason]) => reason);

  expect(rows.toSorted()).toEqual(reasons.toSorted());
});

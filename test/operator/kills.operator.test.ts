/** Operators that are killed with SIGKILL after an action, before they have recorded it. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { setupDatabase, shareInstallation } from '../support/setup.ts';
import { setupDeclared } from './declared.ts';
import { shareApiServer } from './share-api-server.ts';
import { interrupt, transitions } from './transitions.ts';

const server = shareApiServer();
const shared = shareInstallation(setupDatabase);

describe('an operator that is killed', () => {
  it('is killed below in every action', () => {
    const plan = path.join(import.meta.dirname, '../../apps/operator/webhook-subscription/plan.ts');
    const planned = [...readFileSync(plan, 'utf8').matchAll(/^ {2}\| \{\s+kind: '(\w+)'/gm)].map(([, name]) => name);

    expect(planned.length).toBeGreaterThan(5);
    const killed = transitions.flatMap(({ actions }) => actions);
    expect([...new Set(killed)].toSorted()).toEqual([...new Set(planned)].toSorted());
  });

  it.each(transitions.flatMap((transition) => transition.actions.map((action) => ({ action, transition }))))(
    'after $action of $transition.name is followed by one that ends it, and does nothing twice',
    async ({ action, transition }) => {
      const t = await setupDeclared(server(), shared());
      const { recorded, counts } = await interrupt(t, transition, { afterAction: action });

      expect(recorded.toSorted()).toEqual(transition.recorded.toSorted());
      if (transition.counts !== undefined) expect(counts).toEqual(transition.counts);
    },
  );
});

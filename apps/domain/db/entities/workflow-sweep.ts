import { defineEntity, p } from '@mikro-orm/core';

/**
 * When Temporal is next asked for every delivery that runs, and from where on; one row. See
 * migration 0019.
 */
export const WorkflowSweep = defineEntity({
  name: 'WorkflowSweep',
  tableName: 'workflow_sweep',
  properties: {
    id: p.boolean().primary().default(true),
    dueAt: p.datetime().default('-infinity'),
    place: p.datetime().nullable(),
  },
});

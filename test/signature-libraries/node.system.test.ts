import { describeReceiver } from './guarantees.ts';
import { prepareNode } from './node.ts';

describeReceiver({
  language: 'Node',
  libraries: ['stripe', 'standardwebhooks', 'svix'],
  prepare: prepareNode,
  prepareTimeoutMs: 10_000,
});

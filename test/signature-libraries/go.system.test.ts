import { prepareGo } from './go.ts';
import { describeReceiver } from './guarantees.ts';

describeReceiver({
  language: 'Go',
  libraries: ['stripe', 'standardwebhooks', 'svix'],
  prepare: prepareGo,
  prepareTimeoutMs: 300_000,
});

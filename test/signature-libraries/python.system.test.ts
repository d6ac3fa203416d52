import { describeReceiver } from './guarantees.ts';
import { preparePython } from './python.ts';

describeReceiver({
  language: 'Python',
  libraries: ['stripe', 'standardwebhooks', 'svix'],
  prepare: preparePython,
  prepareTimeoutMs: 300_000,
});

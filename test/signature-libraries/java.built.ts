import { describeReceiver } from './guarantees.ts';
import { prepareJava } from './java.ts';

describeReceiver({
  language: 'Java',
  libraries: ['stripe', 'standardwebhooks', 'svix'],
  prepare: prepareJava,
  prepareTimeoutMs: 900_000,
});

import { calledAs } from '#runtime/command-line.ts';
import type { Command, Noun } from './command.ts';

const common = `
  --region us|ca   the region; by default REGION, or the only region of the stack
  --json           print one JSON document on standard output
  --help           show this help

Settings are read from the environment: DATABASE_URL, WEBHOOK_SECRET_KEYS, WEBHOOK_ALLOW, KEY_PEPPERS, CONSOLE_URL,
TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_TLS and its files. Settings that are not set come from the development
stack, where there is one (ORG_API_STATE, by default .org-api).
Exit codes: 0 success; 1 failed, with the reason on standard error; 2 invalid arguments; 130 interrupted by Ctrl-C.
`;

/** Returns the help of the whole command, of a noun, or of one of its verbs. */
export function helpText(nouns: readonly Noun[], noun: Noun | null, command: Command | null): string {
  if (noun === null) {
    const width = Math.max(...nouns.map((one) => one.noun.length));
    const lines = nouns.map((one) => `  ${one.noun.padEnd(width)}   ${one.summary}`);
    return (
      `Usage: ${calledAs('npm run -s orgctl --')} NOUN VERB [options]\n\n${lines.join('\n')}\n\n` +
      `Run orgctl NOUN --help for its verbs.\n${common}`
    );
  }
  const shown = command === null ? noun.commands : [command];
  return `${shown.map((one) => formatUsage(noun, one)).join('\n\n')}\n${common}`;
}

function formatUsage({ noun }: Noun, { verb, summary, options }: Command): string {
  const entries = Object.entries(options);
  const shape = (name: string, value: string | null) => (value === null ? `--${name}` : `--${name} ${value}`);
  const flags = entries.map(([name, { value, required }]) =>
    required ? shape(name, value) : `[${shape(name, value)}]`,
  );
  const width = Math.max(0, ...entries.map(([name, { value }]) => shape(name, value).length));
  const lines = entries.map(([name, { value, about }]) => `    ${shape(name, value).padEnd(width)}  ${about}`);
  return [`orgctl ${[noun, verb, ...flags].filter((part) => part !== '').join(' ')}`, `  ${summary}`, ...lines].join(
    '\n',
  );
}

import type { Command, Noun } from './command.ts';

const common = `
  --region us|ca   the region; REGION, or the stack's only one, when left out
  --json           one JSON document on standard output
  --help           this text

Settings come from the environment (DATABASE_URL, WEBHOOK_SECRET_KEYS, WEBHOOK_ALLOW, KEY_PEPPERS, TEMPORAL_ADDRESS,
TEMPORAL_NAMESPACE, TEMPORAL_TLS and what belongs to it, CONSOLE_URL), and for what is left out from the stack of npm
start (ORG_API_STATE, .org-api).
Exit code 0; 1 with a sentence on standard error when refused; 2 for a wrong call; 130 when Ctrl-C ended the waiting.
`;

/** Returns the help of the whole command, of a noun, or of one of its verbs. */
export function helpText(nouns: readonly Noun[], noun: Noun | null, command: Command | null): string {
  if (noun === null) {
    const width = Math.max(...nouns.map((one) => one.noun.length));
    const lines = nouns.map((one) => `  ${one.noun.padEnd(width)}   ${one.summary}`);
    return (
      `Usage: npm run -s orgctl -- NOUN VERB [options]\n\n${lines.join('\n')}\n\norgctl NOUN --help shows ` +
      `its verbs.\n${common}`
    );
  }
  const shown = command === null ? noun.commands : [command];
  return `${shown.map((one) => usageOf(noun, one)).join('\n\n')}\n${common}`;
}

function usageOf({ noun }: Noun, { verb, summary, options }: Command): string {
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

import { randomUUID } from 'node:crypto';
import { isSecret } from '#domain/webhooks/secret.ts';
import { describeSecretProblem } from '#domain/webhooks/verification/delivery-checks.ts';
import { UsageError } from '#runtime/errors.ts';
import { parseOptions, rejectIgnored } from '../parse-options.ts';

/** The options of `npm run tool -- certify`. */
export interface CertifyOptions {
  url: string;
  secrets: string[];
  secretFile: string | null;
  stateUrl: string | null;
  caFile: string | null;
  endpoint: string;
  organizationId: string;
  deadlineMs: number;
  json: boolean;
}

export const usage = `Usage: npm run tool -- certify URL (--secret whsec_... | --secret-file FILE) [--state-url URL]
                          [--json] [--endpoint ID] [--org ID] [--deadline SECONDS] [--ca-file FILE]

Sends a receiver what it will meet, and says what it does wrong: why it matters, and the fix. Use a receiver with data
for tests: it gets events of clients and seats that do not exist.

  --secret SECRET    the secret that the receiver has; may be repeated when it has two
  --secret-file FILE a file with the secret, as listen --secret-file keeps it
  --state-url URL    where the receiver reports its state. GET URL?event=ID&grant=ID&seat=ID answers
                     {"events": {"ID": 1}, "grants": {"ID": "active"}, "seats": {"ID": "ended"}}: how often it applied
                     an event (0 if never applied), and whether a client and a seat are "active" or "ended". Each
                     member only if the receiver keeps it, and each id only if it is asked and known. Without it, what
                     answers do not show is not judged
  --endpoint ID      the id in webhook-endpoint, for a receiver that chooses its secret by it (a new one)
  --org ID           the organization of the events (a new one)
  --deadline SECONDS how soon it has to answer (10, as the service), and then to apply what it accepted
  --ca-file FILE     PEM certificates of the authority that signed the one of an https receiver
  --json             prints the report as JSON, with every scenario

Exit codes: 0 nothing failed, 1 something failed, 2 a wrong call, or nothing answers at URL.
`;

/** @throws UsageError with the correct usage. */
export function readOptions(args: string[]): CertifyOptions {
  const { values, positionals } = parseOptions({ args, options, allowPositionals: true });
  const [url, ...more] = positionals;
  if (url === undefined || more.length > 0) throw new UsageError('Give the URL of your receiver.');
  rejectIgnored(values, listProblems(url, values));
  const secrets = values.secret ?? [];
  if (secrets.length === 0 && values['secret-file'] === undefined)
    throw new UsageError('Give the secret that the receiver has, with --secret or --secret-file.');
  for (const secret of secrets)
    if (!isSecret(secret)) throw new UsageError(`--secret: the secret ${describeSecretProblem(secret)}.`);
  return {
    url: readUrl('URL', url),
    secrets,
    secretFile: values['secret-file'] ?? null,
    stateUrl: values['state-url'] === undefined ? null : readUrl('--state-url', values['state-url']),
    caFile: values['ca-file'] ?? null,
    endpoint: values.endpoint ?? randomUUID(),
    organizationId: values.org ?? randomUUID(),
    deadlineMs: readDeadline(values.deadline) * 1_000,
    json: values.json === true,
  };
}

const text = { type: 'string' } as const;

const options = {
  secret: { type: 'string', multiple: true },
  'secret-file': text,
  'state-url': text,
  'ca-file': text,
  endpoint: text,
  org: text,
  deadline: text,
  json: { type: 'boolean' },
} as const;

type Values = ReturnType<typeof parseOptions<{ options: typeof options }>>['values'];

/** Returns why an option has no effect beside the others, as the rest of a sentence; null: it has one. */
function listProblems(url: string, values: Values): Record<keyof typeof options, string | null> {
  const isHttps = [url, values['state-url'] ?? ''].some((one) => /^https:/i.test(one));
  return {
    secret: null,
    'secret-file': values.secret === undefined ? null : 'has no effect with --secret',
    'state-url': null,
    'ca-file': isHttps ? null : 'needs an https:// URL',
    endpoint: null,
    org: null,
    deadline: null,
    json: null,
  };
}

function readUrl(name: string, given: string): string {
  if (/^https?:$/.test(URL.parse(given)?.protocol ?? '')) return given;
  throw new UsageError(`${name}: give an http:// or https:// URL.`);
}

function readDeadline(given = '10'): number {
  const seconds = Number(given);
  if (seconds > 0 && seconds <= 60) return seconds;
  throw new UsageError('--deadline: give a number of seconds, 60 at most.');
}

import { z } from 'zod';
import { Settings as ApiSettings } from '../../apps/api/config.ts';
import { Settings as ConsoleSettings } from '../../apps/console/config.ts';
import { Settings as DevSettings } from '../../apps/dev/config.ts';
import { Settings as ImportSettings } from '../../apps/import/config.ts';
import { Settings as MigrateSettings } from '../../apps/migrate/config.ts';
import { Settings as OperatorSettings } from '../../apps/operator/config.ts';
import { Settings as OrgctlSettings } from '../../apps/orgctl/config.ts';
import { Settings as DoctorSettings } from '../../apps/orgctl/doctor/config.ts';
import { Settings as ReceiverSettings } from '../../apps/receiver/config.ts';
import { Settings as WorkerSettings } from '../../apps/worker/config.ts';

const programs = [
  { name: 'API', schemas: [ApiSettings] },
  { name: 'worker', schemas: [WorkerSettings] },
  { name: 'console', schemas: [ConsoleSettings] },
  { name: 'migrate', schemas: [MigrateSettings] },
  { name: 'operator', schemas: [OperatorSettings] },
  { name: 'import', schemas: [ImportSettings] },
  { name: 'orgctl', schemas: [OrgctlSettings, DoctorSettings] },
  { name: 'receiver', schemas: [ReceiverSettings] },
  { name: '`npm start`', schemas: [DevSettings] },
] as const;

/** What a reader asks, and the settings that answer it, in the order of the page. */
const questions: Readonly<Record<string, string>> = {
  'Which region is this, and where do people and programs reach it?':
    'REGION BASE_URL_US BASE_URL_CA API_URL CONSOLE_URL',
  'Where are my stores?':
    'DATABASE_URL API_DATABASE_URL WORKER_DATABASE_URL CONSOLE_DATABASE_URL PLATFORM_DATABASE_URL ' +
    'OPERATOR_DATABASE_URL REDIS_URL TEMPORAL_ADDRESS TEMPORAL_NAMESPACE',
  'How are connections to them protected?':
    'ALLOW_PLAINTEXT TEMPORAL_TLS TEMPORAL_TLS_SERVER_NAME TEMPORAL_TLS_CA TEMPORAL_TLS_CERT TEMPORAL_TLS_KEY ' +
    'TEMPORAL_API_KEY',
  'Which secrets does it need?': 'KEY_PEPPERS KEY_TAG_SECRETS WEBHOOK_SECRET_KEYS',
  'Where does it listen, and behind which proxies?': 'HOST PORT METRICS_PORT TRUSTED_PROXIES',
  'Which limits can I set?': 'DATABASE_POOL_MAX MAX_CONNECTIONS RESPONSE_MEMORY_MIB DELIVERY_SLOTS',
  'Where do webhooks post, and when?': 'WEBHOOK_ALLOW DELIVERY_SCHEDULE SUSPEND_AFTER REQUEUE_AFTER',
  'How is mail sent?': 'MAIL_URL MAIL_FROM MAIL_CA',
  'How long are records kept?': 'AUDIT_LOG_RETENTION AUDIT_LOG_RETENTION_FLOOR DELIVERY_RETENTION',
  'What do I see of it?': 'LOG_LEVEL OTEL_EXPORTER_OTLP_ENDPOINT AUDIT_LOG_STREAM',
  'How does it start and stop?': 'READY_AFTER WORKFLOW_BUNDLE DRAIN_DELAY_MS',
  'What does the Kubernetes operator need?': 'OPERATOR_NAMESPACE OPERATOR_IDENTITY OPERATOR_WEBHOOKS KUBECONFIG',
  'How do I test a region? (`orgctl doctor`, `helm test`)':
    'PROBE_KEY PROBE_ORGANIZATION_ID PROBE_WEBHOOK_ID PROBE_WEBHOOK_ALLOW PROBE_WEBHOOK_SECRET PROBE_PORT',
  'How do I develop?': 'ORG_API_STATE ORG_API_PORT RECEIVER_SECRETS',
};

/** One setting of one program. */
interface Use {
  program: string;
  setting: string;
  standard: string;
  description: string;
}

const introduction = `# Configuration

Generated from the schemas in \`apps/*/config.ts\` by \`npm run tool -- docs\`. Do not edit.

- Every process reads its environment once, at its start, and reports all problems together, by name and without values.
- \`NAME_FILE\` names a file that holds the value of \`NAME\`. A trailing newline is dropped. An empty value counts as
  none.
- API, worker and console read these again within 2 seconds when their file changes: database URLs (login and password
  only), \`REDIS_URL\` (likewise), \`KEY_PEPPERS\`, \`KEY_TAG_SECRETS\`, \`WEBHOOK_SECRET_KEYS\`,
  \`TEMPORAL_API_KEY\` and \`MAIL_URL\`. A value that cannot be used is rejected by name in the log and in
  \`org_api_setting_rejected\`; the old one stays in use. Logins and API keys are tried by a connection first.
- A database URL is \`postgresql://user:password@host:port/database\`. IPv6 addresses are in brackets. A Unix socket is
  \`?host=/folder\` without another host, or the encoded folder as the host. Read are the parameters \`host\`,
  \`port\`, \`sslmode\`, \`sslrootcert\`, \`sslcert\` and \`sslkey\`; any other is rejected by name.
- \`migrate\` creates a login only from a name of at most 63 and a password of any number of ASCII letters, digits and
  symbols: PostgreSQL and its clients read other characters differently.
- Only \`sslmode=verify-full\` counts as TLS. \`disable\`, \`allow\` and \`prefer\` are plain text. \`require\` and
  \`no-verify\` encrypt without verifying the server, so \`ALLOW_PLAINTEXT\` must allow them too. \`verify-ca\` is
  rejected.
- A Redis URL is \`redis://user:password@host:port/number\`, \`rediss://\` for TLS, or \`unix://:password@/path?db=0\`.
  A Redis Cluster is \`redis://host:port,host:port?cluster=true\`, and Redis with sentinels
  \`redis://sentinel:port,sentinel:port?sentinel=NAME\`, with \`sentinel_user\` and \`sentinel_password\` for the login
  of the sentinels ([prepare Redis](operations/prepare-redis.md#a-cluster-or-sentinels)).
- \`npm start\` passes the settings of an app on to it, except those that it decides itself: region, host, ports,
  logins and secrets. It adds its own receiver to \`WEBHOOK_ALLOW\`. \`DATABASE_URL\`, \`REDIS_URL\` and
  \`TEMPORAL_ADDRESS\` name servers that it uses instead of embedded ones.
- What no operator would change is a constant with its reason in the code, for example the longest time of a response.
`;

const tableHead = '| Setting | Read by | Default | Meaning |\n| --- | --- | --- | --- |';

/** No schema contains it, because every program reads it (`readSettings`). */
const plaintext: Use = {
  program: 'all',
  setting: 'ALLOW_PLAINTEXT',
  standard: 'none',
  description:
    'Servers, of `postgresql`, `redis` and `temporal`, separated by commas, that may be reached on another machine ' +
    'without TLS that verifies it. Loopback addresses and Unix sockets need no permission.',
};

/** Returns how many settings there are, and how many uses of one by a program. */
export function countSettings(): { settings: number; uses: number } {
  const uses = listUses();
  return { settings: new Set(uses.map(({ setting }) => setting)).size, uses: uses.length };
}

/**
 * Returns `docs/configuration.md`: every setting once, below the question that it answers, from the
 * schemas of all programs.
 *
 * @throws Error when a setting has no description or no question, or a question names no setting.
 */
export function configurationPage(): string {
  const uses = listUses();
  const listed = Object.values(questions).flatMap((names) => names.split(' '));
  const unlisted = new Set(uses.map(({ setting }) => setting)).symmetricDifference(new Set(listed));
  if (unlisted.size > 0) throw new Error(`docs/generate/configuration.ts: ${[...unlisted].join(', ')}`);
  const parts = Object.entries(questions).map(([question, names]) => {
    const rows = names.split(' ').map((name) => formatRow(uses.filter(({ setting }) => setting === name)));
    return `## ${question}\n\n${tableHead}\n${rows.join('\n')}\n`;
  });
  return [`${introduction}\n${listed.length} settings:\n`, ...parts].join('\n');
}

function listUses(): Use[] {
  const uses = programs.flatMap(({ name, schemas }) => {
    const types: Record<string, z.ZodType> = Object.assign({}, ...schemas.map(({ shape }) => shape).reverse());
    return Object.entries(types).map(([setting, type]) => {
      const description = findDescription(type);
      if (description === undefined) throw new Error(`${name}: ${setting} has no description`);
      return { program: name, setting, standard: formatDefault(type), description };
    });
  });
  return [plaintext, ...uses];
}

/** The first program of a setting says what it means; defaults that differ name their programs. */
function formatRow(uses: readonly Use[]): string {
  const [first] = uses;
  const defaults = Object.entries(Object.groupBy(uses, ({ standard }) => standard)).map(([standard, of = []]) =>
    of.length === uses.length ? standard : `${of.map(({ program }) => program).join(', ')}: ${standard}`,
  );
  const readers = uses.map(({ program }) => program).join(', ');
  return `| \`${first?.setting}\` | ${readers} | ${defaults.join('; ')} | ${first?.description} |`;
}

/** Returns the description of a setting, also when it is optional or has a default. */
function findDescription(type: unknown): string | undefined {
  if (!(type instanceof z.ZodType)) return undefined;
  const isWrapper = type instanceof z.ZodOptional || type instanceof z.ZodDefault;
  return type.description ?? (isWrapper ? findDescription(type.def.innerType) : undefined);
}

/** Returns the default as the table shows it: a value, or what the setting says of it. */
function formatDefault(type: z.ZodType): string {
  const { shown } = type.meta() ?? {};
  if (typeof shown === 'string') return /^(false|[\w.]*\d[\w.]*)$/.test(shown) ? `\`${shown}\`` : shown;
  const value = innerDefault(type);
  if (value !== undefined) return `\`${value}\``;
  return type.safeParse(undefined).success ? 'none' : 'required';
}

function innerDefault(type: unknown): unknown {
  if (type instanceof z.ZodDefault) return type.def.defaultValue;
  if (type instanceof z.ZodPipe) return innerDefault(type.def.in);
  return undefined;
}

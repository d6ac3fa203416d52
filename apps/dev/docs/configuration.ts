import { z } from 'zod';
import { Settings as ApiSettings } from '../../api/config.ts';
import { Settings as ConsoleSettings } from '../../console/config.ts';
import { Settings as ImportSettings } from '../../import/config.ts';
import { Settings as MigrateSettings } from '../../migrate/config.ts';
import { Settings as OperatorSettings } from '../../operator/config.ts';
import { Settings as OrgctlSettings } from '../../orgctl/config.ts';
import { Settings as DoctorSettings } from '../../orgctl/doctor/config.ts';
import { Settings as ReceiverSettings } from '../../receiver/config.ts';
import { Settings as WorkerSettings } from '../../worker/config.ts';
import { Settings as DevSettings } from '../config.ts';

const processes = [
  { name: 'api', title: 'Read API', schema: ApiSettings },
  { name: 'worker', title: 'Worker', schema: WorkerSettings },
  { name: 'console', title: 'Console', schema: ConsoleSettings },
  { name: 'migrate', title: 'Migrations', schema: MigrateSettings },
  { name: 'import', title: 'Import', schema: ImportSettings },
  { name: 'operator', title: 'Kubernetes operator', schema: OperatorSettings },
  { name: 'orgctl', title: 'orgctl', schema: OrgctlSettings },
  { name: 'doctor', title: '`orgctl doctor` and `helm test`', schema: DoctorSettings },
  { name: 'receiver', title: 'Sample receiver', schema: ReceiverSettings },
  { name: 'dev', title: '`npm start`', schema: DevSettings },
] as const;

const introduction = `# Configuration

Generated from the schemas in \`apps/*/config.ts\` by \`npm run docs\`. Do not edit.

- Every process reads its environment once, at its start, and reports all problems together, by name and without values.
- \`NAME_FILE\` names a file that holds the value of \`NAME\`. A trailing newline is dropped. An empty value counts as
  none.
- API, worker and console read these again within 5 seconds when their file changes: database URLs (login and password
  only), \`REDIS_URL\` (likewise), \`KEY_PEPPERS\`, \`KEY_TAG_SECRETS\`, \`WEBHOOK_SECRET_KEYS\` and
  \`TEMPORAL_API_KEY\`. A
  value that cannot be used is refused by name in the log and in \`org_api_setting_refused\`; the old one stays in use.
  Logins and API keys are tried by a connection first.
- A database URL is \`postgresql://user:password@host:port/database\`. IPv6 addresses are in brackets. A Unix socket is
  \`?host=/folder\` without another host, or the encoded folder as the host. Read are the parameters \`host\`,
  \`port\`, \`sslmode\`, \`sslrootcert\`, \`sslcert\` and \`sslkey\`; any other is refused by name.
- Only \`sslmode=verify-full\` counts as TLS. \`disable\`, \`allow\` and \`prefer\` are plain text. \`require\` and
  \`no-verify\` encrypt without verifying the server, so \`ALLOW_PLAINTEXT\` must allow them too. \`verify-ca\` is
  refused.
- A Redis URL is \`redis://user:password@host:port/number\`, \`rediss://\` for TLS, or \`unix://:password@/path?db=0\`.
- \`ALLOW_PLAINTEXT\` (every process and command; none by default) lists the servers, of \`postgresql\`, \`redis\` and
  \`temporal\`, that may be reached on another machine without TLS that verifies it. Loopback addresses and Unix
  sockets need no permission.
- \`npm start\` passes the settings of an app on to it, except those that it decides itself: region, host, ports,
  logins and
  secrets. It adds its own receiver to \`WEBHOOK_ALLOW\`.
`;

/**
 * Returns `docs/configuration.md`: a table of settings per process, from their schemas.
 *
 * @throws Error when a setting has no description.
 */
export function configurationPage(): string {
  const parts = processes.map(({ name, title, schema }) => {
    const rows = Object.entries(schema.shape).map(([setting, type]) => rowOf(name, setting, type));
    return `## ${title}\n\n| Setting | Default | Meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`;
  });
  return [introduction, ...parts].join('\n');
}

function rowOf(process: string, setting: string, type: z.ZodType): string {
  const description = descriptionOf(type);
  if (description === undefined) throw new Error(`apps/${process}/config.ts: ${setting} has no description`);
  return `| \`${setting}\` | ${defaultOf(type)} | ${description} |`;
}

/** Returns the description of a setting, also when it is optional or has a default. */
function descriptionOf(type: unknown): string | undefined {
  if (!(type instanceof z.ZodType)) return undefined;
  const isWrapper = type instanceof z.ZodOptional || type instanceof z.ZodDefault;
  return type.description ?? (isWrapper ? descriptionOf(type.def.innerType) : undefined);
}

/** Returns the default as the table shows it: a value, or what the setting says of it. */
function defaultOf(type: z.ZodType): string {
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

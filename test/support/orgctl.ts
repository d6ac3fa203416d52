import { inject } from 'vitest';
import { runOrgctl } from '../../apps/orgctl/run.ts';
import { childEnvironment } from './child-environment.ts';
import { runCommand } from './run-command.ts';
import { testKeySettings, testWebhookSecretKeys } from './secrets.ts';
import { setupDatabase } from './setup.ts';
import { allowSettings, guardSockets } from './socket-guard.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { testNamespace } from './worker.ts';

/** The result of a call; `json` parses its standard output. */
export interface Called {
  code: number | null;
  stdout: string;
  stderr: string;
  json: <T = Record<string, unknown>>() => T;
}

const called = (code: number | null, stdout: string, stderr: string): Called => ({
  code,
  stdout,
  stderr,
  json: () => JSON.parse(stdout),
});

/**
 * Carries out a call in this process, with this environment and no other settings: a process takes
 * half a second to start. Never rejects: the exit code is part of the result.
 */
export async function callOrgctl(environment: Record<string, string>, args: string[]): Promise<Called> {
  const written = { output: '', error: '' };
  const ends: (() => void)[] = [];
  allowSettings(environment);
  guardSockets((end) => void ends.push(end), 'orgctl');
  try {
    const code = await runOrgctl(args, {
      environment,
      writeOutput: (text) => {
        written.output += text;
      },
      writeError: (text) => {
        written.error += text;
      },
    });
    return called(code, written.output, written.error);
  } finally {
    for (const end of ends) end();
  }
}

/** The same in a separate process, for what depends on it. */
export async function spawnOrgctl(env: Record<string, string>, args: string[]): Promise<Called> {
  const { code, stdout, stderr } = await runCommand(['apps/orgctl/main.ts', ...args], { ...childEnvironment, ...env });
  return called(code, stdout, stderr);
}

/**
 * An installation for one test, and `orgctl` on it. With `shell`, in a separate process that has these
 * variables too.
 */
export async function setupOrgctl(shell: Readonly<Record<string, string>> | null = null) {
  const installation = await setupDatabase();
  const env: Record<string, string> = {
    ...shell,
    ...testKeySettings,
    DATABASE_URL: installation.database.ownerUrl,
    REGION: 'us',
    ORG_API_STATE: temporaryFolder(),
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
    WEBHOOK_ALLOW: '127.0.0.0/8',
    CONSOLE_URL: 'https://console.example.org/',
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: testNamespace(),
  };
  const call = shell === null ? callOrgctl : spawnOrgctl;
  return { ...installation, env, orgctl: (...args: string[]) => call(env, args) };
}

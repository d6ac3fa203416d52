import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import { replaceFile, ServerUnavailableError } from './servers/process.ts';
import { acquireLock } from './state-lock.mjs';

/** An organization of `stack.json`. `sampleKey` has all scopes; null without an active owner. */
export interface StackOrganization {
  id: string;
  name: string;
  ownerUserId: string | null;
  sampleKey: string | null;
}

/** One region of a running stack, with base URLs. */
export interface StackRegion {
  region: Region;
  api: string;
  console: string;
  metrics: string;
  databaseUrl: string;
  redisUrl?: string;
  /** The sample receiver's. */
  receiver: string;
  temporalAddress: string;
  temporalNamespace: string;
  temporalUi?: string;
  organizations: StackOrganization[];
}

/** The webhook that sends an organization's events to the sample receiver, with its secret. */
export interface SampleWebhook {
  organizationId: string;
  webhookId: string;
  secret: string;
}

/** What the stack remembers of a region between starts. `imported` has the hashes of files. */
export interface RegionMemory {
  organizations: StackOrganization[];
  imported: string[];
  webhooks: SampleWebhook[];
}

/** Secrets that a region's apps share, created once, readable by the state folder's owner only. */
export type RegionSecrets = ReturnType<typeof createSecrets>;

function createSecrets() {
  const secret = () => randomBytes(32).toString('base64');
  const password = () => randomBytes(18).toString('base64url');
  return {
    keyPeppers: `1:${secret()}`,
    keyTagSecrets: secret(),
    webhookSecretKeys: `1:${secret()}`,
    passwords: { api: password(), worker: password(), console: password(), platform: password() },
  };
}

/**
 * Locks a state folder, so that a second `npm start` on it does not stop the first one's apps.
 *
 * @returns a function that releases the lock.
 * @throws ServerUnavailableError when another process holds it.
 */
export function lockState(folder: string): () => void {
  const { release, holder } = acquireLock(path.join(folder, 'npm-start.lock'));
  if (release !== undefined) return release;
  throw new ServerUnavailableError(
    `Another npm start (process ${holder}) runs this stack: use that one, stop it with Ctrl-C, or give this ` +
      'one its own ORG_API_STATE and ORG_API_PORT.',
  );
}

export type State = ReturnType<typeof openState>;

/**
 * Opens the state folder's files. Each is replaced in one step, so that a kill damages none.
 *
 * @throws ServerUnavailableError when the folder cannot be created.
 */
export function openState(folder: string) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o711 });
  } catch (cause) {
    const why = (cause as Error).message;
    throw new ServerUnavailableError(`The folder ${folder} cannot be created (${why}): set ORG_API_STATE to another.`);
  }
  const at = (file: string) => path.join(folder, file);
  const write = (file: string, text: string) => replaceFile(at(file), `${text}\n`);
  const writeJson = (file: string, value: unknown) => write(file, JSON.stringify(value, null, 2));

  /** A file with an entry for each region. */
  function entriesOf<Entry>(file: string) {
    const read = (): Partial<Record<Region, Entry>> =>
      existsSync(at(file)) ? JSON.parse(readFileSync(at(file), 'utf8')) : {};
    return {
      find: (region: Region): Entry | null => read()[region] ?? null,
      write: (region: Region, entry: Entry) => writeJson(file, { ...read(), [region]: entry }),
    };
  }
  const secrets = entriesOf<RegionSecrets>('secrets.json');
  const memory = entriesOf<RegionMemory>('memory.json');

  return {
    folder,
    stackFile: at('stack.json'),
    writeStack: (regions: StackRegion[]) => writeJson('stack.json', { regions }),

    /** Writes a sample key as a configuration of curl, out of the shell's history. */
    writeCurlConfig(region: Region, sampleKey: string | null): void {
      if (sampleKey === null) rmSync(at(`${region}.curl`), { force: true });
      else write(`${region}.curl`, `header = "Authorization: Bearer ${sampleKey}"`);
    },

    /** Returns the region's secrets. Creates them the first time. */
    getSecrets(region: Region): RegionSecrets {
      const found = secrets.find(region) ?? createSecrets();
      secrets.write(region, found);
      return found;
    },
    getMemory: (region: Region): RegionMemory =>
      memory.find(region) ?? { organizations: [], imported: [], webhooks: [] },
    writeMemory: memory.write,
  };
}

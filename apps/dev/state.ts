import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import type { KeySecrets } from '#domain/keys/key.ts';
import { keyPeppers, keyTagSecrets } from '#runtime/settings/types.ts';
import { replaceFile, ServerUnavailableError } from './servers/process.ts';
import { acquireLock } from './state-lock.mjs';

/** An organization of `stack.json`. `sampleKey` has all scopes; null without an active owner. */
export interface StackOrganization {
  id: string;
  name: string;
  ownerUserId: string | null;
  sampleKey: string | null;
}

/** One region of a running stack. Base URLs are absent until the process behind them runs. */
export interface StackRegion {
  region: Region;
  api: string;
  console: string;
  metrics: string;
  databaseUrl: string;
  redisUrl?: string;
  /** Base URL of the sample receiver. */
  receiver: string;
  temporalAddress: string;
  temporalNamespace: string;
  /** Base URL of Temporal's web UI. */
  temporalUi?: string;
  organizations: StackOrganization[];
}

/** Secrets that a region's apps share, created once, readable by the state folder's owner only. */
export interface RegionSecrets {
  keyPeppers: string;
  keyTagSecrets: string;
  webhookSecretKeys: string;
  passwords: { api: string; worker: string; console: string; platform: string };
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

const files = { stack: 'stack.json', secrets: 'secrets.json', memory: 'memory.json' } as const;

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

/** Opens the state folder's files. Each is replaced in one step, so that a kill damages none. */
export function openState(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o711 });

  function read<T>(file: string): T | null {
    const at = path.join(folder, file);
    return existsSync(at) ? (JSON.parse(readFileSync(at, 'utf8')) as T) : null;
  }
  function write(file: string, value: unknown): void {
    writeText(file, JSON.stringify(value, null, 2));
  }
  function writeText(file: string, text: string): void {
    replaceFile(path.join(folder, file), `${text}\n`);
  }

  return {
    folder,
    stackFile: path.join(folder, files.stack),
    findStack: () => read<{ regions: StackRegion[] }>(files.stack),
    writeStack: (regions: StackRegion[]) => write(files.stack, { regions }),

    /** Writes a sample key as a configuration of curl, out of the shell's history. */
    writeCurlConfig(region: Region, sampleKey: string | null): void {
      const file = `${region}.curl`;
      if (sampleKey === null) rmSync(path.join(folder, file), { force: true });
      else writeText(file, `header = "Authorization: Bearer ${sampleKey}"`);
    },
    findSecrets: (region: Region) => read<Partial<Record<Region, RegionSecrets>>>(files.secrets)?.[region] ?? null,

    /** Returns the region's secrets. Creates those that do not exist. */
    getSecrets(region: Region): RegionSecrets {
      const all = read<Partial<Record<Region, Partial<RegionSecrets>>>>(files.secrets) ?? {};
      const known = all[region] ?? {};
      const secret = () => randomBytes(32).toString('base64');
      const password = () => randomBytes(18).toString('base64url');
      const secrets = {
        keyPeppers: known.keyPeppers ?? `1:${secret()}`,
        keyTagSecrets: known.keyTagSecrets ?? secret(),
        webhookSecretKeys: known.webhookSecretKeys ?? `1:${secret()}`,
        passwords: known.passwords ?? {
          api: password(),
          worker: password(),
          console: password(),
          platform: password(),
        },
      };
      if (Object.keys(secrets).some((kind) => !(kind in known)))
        write(files.secrets, { ...all, [region]: { ...known, ...secrets } });
      return secrets;
    },

    getMemory: (region: Region): RegionMemory =>
      read<Partial<Record<Region, RegionMemory>>>(files.memory)?.[region] ?? {
        organizations: [],
        imported: [],
        webhooks: [],
      },
    writeMemory(region: Region, memory: RegionMemory): void {
      write(files.memory, { ...read<Partial<Record<Region, RegionMemory>>>(files.memory), [region]: memory });
    },
  };
}

export type State = ReturnType<typeof openState>;

/** Returns a region's secrets in the form that the domain takes. */
export function keySecretsOf(region: Region, secrets: Pick<RegionSecrets, 'keyPeppers' | 'keyTagSecrets'>): KeySecrets {
  return {
    region,
    peppers: keyPeppers.parse(secrets.keyPeppers),
    tagSecrets: keyTagSecrets.parse(secrets.keyTagSecrets),
  };
}

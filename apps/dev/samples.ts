import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { StartupError } from '#runtime/errors.ts';
import { findRegion } from '../import/document/find-region.ts';
import { importFile } from '../import/document/import-file.ts';
import { InvalidDocumentError } from '../import/document/problems.ts';
import { generateSample, sampleDefaults } from '../import/generate/sample.ts';
import type { DevConfig } from './config.ts';
import type { Report } from './servers/process.ts';
import type { RegionMemory } from './state.ts';

/** A document to import: a file of `--data`, or samples. Its `hash` is remembered once imported. */
export interface ImportSource {
  region: Region;
  name: string;
  hash: string;
  open: () => AsyncIterable<Uint8Array | string>;
}

/**
 * Lists what this start imports, samples first.
 *
 * @throws StartupError for a file whose region is not brought up.
 */
export async function listSources(config: DevConfig): Promise<ImportSource[]> {
  const asOf = new Date().toISOString().slice(0, 10);
  const samples = config.regions.map((region) => ({
    region,
    name: 'sample organizations',
    hash: `sample ${JSON.stringify(sampleDefaults)}`,
    open: () => generateSample({ region, asOf, ...sampleDefaults }),
  }));
  const files = await Promise.all(config.dataFiles.map((file) => fileSource(file, config.regions)));
  return config.samples ? [...samples, ...files] : files;
}

/**
 * Imports the documents that this stack has not imported yet; later starts keep what people have
 * changed since. Dates are moved to today, and no events are created for the history.
 */
export async function importSources(
  owner: PostgresServer,
  sources: readonly ImportSource[],
  memory: RegionMemory,
  report: Report,
): Promise<RegionMemory> {
  const imported = [...memory.imported];
  const organizations = new Map(memory.organizations.map((organization) => [organization.id, organization]));
  for (const { region, name: fileName, hash, open } of sources) {
    if (imported.includes(hash)) {
      report(`${fileName} was imported before; its data is kept`);
      continue;
    }
    const how = { region, today: true, backfill: true, report };
    const result = await importFile({ server: owner, source: open(), fileName, ...how }).catch((cause: unknown) => {
      throw cause instanceof InvalidDocumentError ? new StartupError(cause.message, { cause }) : cause;
    });
    for (const { id, name, ownerUserId } of result.organizations)
      organizations.set(id, { sampleKey: null, ...organizations.get(id), id, name, ownerUserId });
    imported.push(hash);
  }
  return { ...memory, imported, organizations: [...organizations.values()] };
}

async function fileSource(file: string, regions: readonly Region[]): Promise<ImportSource> {
  if (!statSync(file).isFile()) throw new StartupError(`--data ${file}: it is no file, which is read more than once.`);
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  const region = await findRegion(createReadStream(file));
  const found = regions.find((code) => code === region);
  if (found === undefined) {
    const why =
      region === null
        ? 'it names no region'
        : `it is for the region ${region}, which is not brought up (--regions ${[...regions, region].join(',')})`;
    throw new StartupError(`--data ${file}: ${why}.`);
  }
  const open = () => createReadStream(file);
  return { region: found, name: path.basename(file), hash: hash.digest('hex'), open };
}

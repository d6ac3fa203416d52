import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { StartupError } from '#runtime/errors.ts';
import { findRegion } from '../import/document/find-region.ts';
import { importFile } from '../import/document/import-file.ts';
import { InvalidDocumentError } from '../import/document/problems.ts';
import { generateSample, sampleDefaults } from '../import/generate/sample.ts';
import type { DevConfig } from './config.ts';
import type { RegionMemory } from './state.ts';

/** A document to import: a file of `--data`, or samples. Its `hash` is remembered once imported. */
export interface ImportSource {
  region: Region;
  name: string;
  hash: string;
  /** Whether it is generated. The first event may change generated data. */
  isSample: boolean;
  open: () => AsyncIterable<Uint8Array | string>;
}

/**
 * Lists what this start imports, samples first.
 *
 * @throws StartupError for a file whose region is not brought up.
 */
export async function listSources(config: DevConfig): Promise<ImportSource[]> {
  const asOf = new Date().toISOString().slice(0, 10);
  const samples = config.samples
    ? config.regions.map((region) => ({
        region,
        name: 'sample organizations',
        hash: `sample ${JSON.stringify(sampleDefaults)}`,
        isSample: true,
        open: () => generateSample({ region, asOf, ...sampleDefaults }),
      }))
    : [];
  const files = await Promise.all(config.dataFiles.map((file) => fileSource(file, config.regions)));
  return [...samples, ...files];
}

/**
 * Imports the documents that this stack has not imported yet; later starts keep what people have
 * changed since. Dates are moved to today, and no events are created for the history.
 */
export async function importSources(options: {
  region: Region;
  owner: PostgresServer;
  sources: ImportSource[];
  memory: RegionMemory;
  report: (line: string) => void;
}): Promise<RegionMemory> {
  const { region, owner, sources, report } = options;
  const imported = [...options.memory.imported];
  const organizations = new Map(options.memory.organizations.map((organization) => [organization.id, organization]));
  for (const source of sources) {
    if (imported.includes(source.hash)) {
      report(`${source.name} was imported before; its data is kept`);
      continue;
    }
    const { name: fileName, open } = source;
    const how = { region, today: true, backfill: true, report };
    const result = await importFile({ server: owner, source: open(), fileName, ...how }).catch((cause: unknown) => {
      throw cause instanceof InvalidDocumentError ? new StartupError(cause.message, { cause }) : cause;
    });
    for (const organization of result.organizations)
      organizations.set(organization.id, { sampleKey: null, ...organizations.get(organization.id), ...organization });
    imported.push(source.hash);
  }
  return { ...options.memory, imported, organizations: [...organizations.values()] };
}

async function fileSource(file: string, regions: readonly Region[]): Promise<ImportSource> {
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
  return { region: found, name: path.basename(file), hash: hash.digest('hex'), isSample: false, open };
}

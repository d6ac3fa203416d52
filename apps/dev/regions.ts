import type { Region } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import type { DevConfig } from './config.ts';
import { type PreparedRegion, prepareRegion, type RegionOptions, startRegion } from './region.ts';
import type { RegionPorts } from './region-plan.ts';
import { listSources } from './samples.ts';
import { secondsSince } from './servers/process.ts';

export { startRegion };

/** Prepares the regions' data one after another, because their logins share the server. */
export async function prepareRegions(
  config: DevConfig,
  ports: ReadonlyMap<Region, RegionPorts>,
  postgres: Promise<PostgresServer>,
  common: Pick<RegionOptions, 'state' | 'report' | 'timed'>,
): Promise<PreparedRegion[]> {
  const sources = await listSources(config);
  const server = await postgres;
  const startedAt = performance.now();
  const baseUrls = Object.fromEntries(
    [...ports].map(([region, { api }]) => [`BASE_URL_${region.toUpperCase()}`, `http://127.0.0.1:${api}`]),
  );
  const prepared: PreparedRegion[] = [];
  for (const [region, regionPorts] of ports) {
    prepared.push(
      await prepareRegion({
        ...common,
        region,
        server,
        databaseName: databaseName(config, region),
        ports: regionPorts,
        baseUrls,
        sources: sources.filter((source) => source.region === region),
      }),
    );
  }
  common.report(`the data is ready (${secondsSince(startedAt)})`);
  return prepared;
}

/** Returns the database's name. With an external server and one region it is the URL's own. */
function databaseName(config: DevConfig, region: Region): string {
  if (config.postgres === null) return `org_api_${region}`;
  const name = config.postgres.database;
  return config.regions.length === 1 ? name : `${name}_${region}`;
}

/** What is known of a region before its data: its apps, its namespace and its ports. */
import type { Region } from '#domain/contract/regions.ts';
import { choosePort } from './servers/ports.ts';
import type { Report } from './servers/process.ts';

/** The apps of a region, each with a folder of its name in the region's. */
export const regionApps = ['receiver', 'worker', 'api', 'console'] as const;
export type RegionApp = (typeof regionApps)[number];

/** Returns a region's namespace. Regions share nothing, not even on one development server. */
export const getTemporalNamespace = (region: Region) => `org-api-${region}`;

export type RegionPorts = Awaited<ReturnType<typeof choosePorts>>;

/** Chooses six ports of the ten from `first` on, or others when these are taken. */
export async function choosePorts(region: Region, first: number, report: Report) {
  const choose = (offset: number, server: string) => choosePort(first + offset, `${region} ${server}`, report);
  return {
    api: await choose(0, 'API'),
    metrics: await choose(1, 'API metrics'),
    workerMetrics: await choose(2, 'worker metrics'),
    console: await choose(3, 'console'),
    receiver: await choose(4, 'sample receiver'),
    consoleMetrics: await choose(5, 'console metrics'),
  };
}

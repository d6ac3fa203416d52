import { z } from 'zod';
import { defaultTimes } from '#domain/db/server.ts';
import { defaultKeepAliveSeconds } from '../http-server.ts';
import { addressBlocks, logLevel, port, wholeNumber } from './types.ts';

/**
 * A connection whose client reads more slowly for 10 seconds is cut. A modem is faster than this
 * (16 KiB/s); only a client that means to hold memory is slower.
 */
const minBytesPerSecond = 16_384;

/** The settings of every HTTP server. */
export const serverSettings = (defaults: { port: number }) => ({
  HOST: z.string().default('::').describe('Address to listen on. `::` is every address, of IPv4 too.'),
  PORT: port.default(defaults.port).describe('Port to listen on.'),
  METRICS_PORT: port.default(9090).describe('Port of `/metrics`.'),
  TRUSTED_PROXIES: addressBlocks.meta({
    description:
      'Addresses or CIDR blocks, separated by commas, whose `X-Forwarded-For` is trusted. Its ' +
      'entries may carry a port.',
    shown: 'none',
  }),
  DATABASE_POOL_MAX: wholeNumber(2, 100).default(10).describe('Connections to PostgreSQL of one process.'),
  DRAIN_DELAY_MS: wholeNumber(0, 60_000)
    .default(500)
    .describe('Milliseconds of `Connection: close` before the server closes on SIGTERM.'),
  MAX_CONNECTIONS: wholeNumber(10, 100_000)
    .default(2_000)
    .describe('Connections at a time. Further connections are refused, and idle ones are closed to make room.'),
  LOG_LEVEL: logLevel,
});

type ServerSettings = z.output<z.ZodObject<ReturnType<typeof serverSettings>>>;

/**
 * Returns the part of an app's configuration that these settings define.
 *
 * @param responseDeadlineMs - from a request to the last byte of its response: as long as the app's
 * largest body may take.
 */
export const buildServerConfig = (s: ServerSettings, responseDeadlineMs: number) => ({
  databasePoolMax: s.DATABASE_POOL_MAX,
  databaseTimes: defaultTimes,
  host: s.HOST,
  port: s.PORT,
  metricsPort: s.METRICS_PORT,
  trustedProxies: s.TRUSTED_PROXIES,
  drainDelayMs: s.DRAIN_DELAY_MS,
  keepAliveSeconds: defaultKeepAliveSeconds,
  bounds: {
    maxConnections: s.MAX_CONNECTIONS,
    responseDeadlineMs,
    minBytesPerSecond,
  },
  logLevel: s.LOG_LEVEL,
});

export type ServerConfig = ReturnType<typeof buildServerConfig>;

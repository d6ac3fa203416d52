import { z } from 'zod';
import { defaultKeepAliveSeconds } from '../http-server.ts';
import { addressBlocks, logLevel, port, wholeNumber } from './types.ts';

/** The settings of every HTTP server. */
export const serverSettings = (defaults: { port: number; answerDeadlineSeconds: number }) => ({
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
  KEEP_ALIVE_SECONDS: wholeNumber(1, 86_400)
    .default(defaultKeepAliveSeconds)
    .describe(
      'Seconds that an idle connection is kept. Keep it longer than the gateway does, so that none closes under ' +
        'a request.',
    ),
  MAX_CONNECTIONS: wholeNumber(10, 100_000)
    .default(2_000)
    .describe('Connections at a time. Further ones are refused, and idle ones are closed to make room.'),
  ANSWER_DEADLINE_SECONDS: wholeNumber(1, 86_400)
    .default(defaults.answerDeadlineSeconds)
    .describe('Seconds from a request to the last byte of its answer. Then the connection is cut.'),
  ANSWER_MIN_BYTES_PER_SECOND: wholeNumber(1, 1_000_000_000)
    .default(16_384)
    .describe(
      'Bytes per second that a client must take while an answer waits for it. A slower connection is cut after 10 s.',
    ),
  LOG_LEVEL: logLevel,
});

type ServerSettings = z.output<z.ZodObject<ReturnType<typeof serverSettings>>>;

/** Returns the part of an app's configuration that these settings define. */
export const serverConfigOf = (s: ServerSettings) => ({
  databasePoolMax: s.DATABASE_POOL_MAX,
  host: s.HOST,
  port: s.PORT,
  metricsPort: s.METRICS_PORT,
  trustedProxies: s.TRUSTED_PROXIES,
  drainDelayMs: s.DRAIN_DELAY_MS,
  keepAliveSeconds: s.KEEP_ALIVE_SECONDS,
  bounds: {
    maxConnections: s.MAX_CONNECTIONS,
    answerDeadlineMs: s.ANSWER_DEADLINE_SECONDS * 1_000,
    minBytesPerSecond: s.ANSWER_MIN_BYTES_PER_SECOND,
  },
  logLevel: s.LOG_LEVEL,
});

export type ServerConfig = ReturnType<typeof serverConfigOf>;

import type { ServerConfig } from '#runtime/settings/server.ts';

/** Under this name, the settings of a test replace constants of the server that it starts. */
export const constants = Symbol('constants');

interface Constants {
  keepAliveSeconds?: number;
  responseDeadlineMs?: number;
  minBytesPerSecond?: number;
  slowAfterMs?: number;
  headersTimeoutMs?: number;
  unknownKeepAliveSeconds?: number;
  databaseTimes?: { connectTimeoutMs: number; statementTimeoutMs: number };
  /** Of the API. */
  readWaitMs?: number;
}

/** For tests of anything but these bounds: on a busy machine, a request would get 503 or be cut. */
export const patient = {
  databaseTimes: { connectTimeoutMs: 60_000, statementTimeoutMs: 60_000 },
  readWaitMs: 60_000,
  minBytesPerSecond: 0,
};

/** The settings of a test's app. As the environment of another process, only the texts count. */
export type TestSettings = Record<string, string> & { [constants]?: Constants };

/** Returns the configuration with the constants of a test. Look-ups of followed settings stay such. */
export function withConstants<C extends ServerConfig>(config: C, { [constants]: own = {} }: TestSettings): C {
  const {
    keepAliveSeconds = config.keepAliveSeconds,
    databaseTimes = config.databaseTimes,
    readWaitMs,
    ...bounds
  } = own;
  const replaced = {
    keepAliveSeconds,
    databaseTimes,
    ...(readWaitMs !== undefined && { readWaitMs }),
    bounds: { ...config.bounds, ...bounds },
  };
  return Object.create(config, Object.getOwnPropertyDescriptors(replaced)) as C;
}

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
}

/** The settings of a test's app. As the environment of another process, only the texts count. */
export type TestSettings = Record<string, string> & { [constants]?: Constants };

/** Returns the configuration with the constants of a test. Look-ups of followed settings stay such. */
export function withConstants<C extends ServerConfig>(config: C, { [constants]: own = {} }: TestSettings): C {
  const { keepAliveSeconds = config.keepAliveSeconds, ...bounds } = own;
  const replaced = { keepAliveSeconds, bounds: { ...config.bounds, ...bounds } };
  return Object.create(config, Object.getOwnPropertyDescriptors(replaced)) as C;
}

import type { z } from 'zod';

/**
 * Returns the settings of one app that the caller of `npm start` has set, by their names or as
 * `NAME_FILE`.
 *
 * What the stack decides itself (addresses, ports, logins, secrets) overrides them in
 * `startRegion`; everything else that the app's schema knows reaches the app, so
 * `DELIVERY_SCHEDULE=1s,2s npm start` does what it says. The rest of the caller's environment stays
 * outside, as it does in production.
 */
export function passedSettings(
  schema: z.ZodObject,
  environment: Record<string, string | undefined> = process.env,
): Record<string, string> {
  const passed: Record<string, string> = {};
  // Not in any schema: it is read beside every one.
  for (const setting of [...Object.keys(schema.shape), 'ALLOW_PLAINTEXT']) {
    for (const name of [setting, `${setting}_FILE`]) {
      const value = environment[name];
      if (value) passed[name] = value;
    }
  }
  return passed;
}

import type { z } from 'zod';

/**
 * Returns the settings of one app that the caller of `npm start` has set, by their names or as
 * `NAME_FILE`, for example `DELIVERY_SCHEDULE=1s,2s npm start`. `startRegion` overrides them with
 * what the stack decides itself. No other variable of the caller reaches the app, as in production.
 */
export function passedSettings(
  schema: z.ZodObject,
  environment: Record<string, string | undefined> = process.env,
): Record<string, string> {
  const passed: Record<string, string> = {};
  // No schema contains it: it is read in addition to each of them.
  for (const setting of [...Object.keys(schema.shape), 'ALLOW_PLAINTEXT']) {
    for (const name of [setting, `${setting}_FILE`]) {
      const value = environment[name];
      if (value) passed[name] = value;
    }
  }
  return passed;
}

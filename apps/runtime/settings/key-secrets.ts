import type { Region } from '#domain/contract/regions.ts';
import type { KeySecrets } from '#domain/keys/key.ts';

/** Returns the secrets of API keys; each look-up returns the newest values. */
export const currentKeySecrets = (
  region: Region,
  values: { readonly KEY_PEPPERS: KeySecrets['peppers']; readonly KEY_TAG_SECRETS: KeySecrets['tagSecrets'] },
): KeySecrets => ({
  region,
  get peppers() {
    return values.KEY_PEPPERS;
  },
  get tagSecrets() {
    return values.KEY_TAG_SECRETS;
  },
});

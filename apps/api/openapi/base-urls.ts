import type { Region } from '#domain/contract/regions.ts';

/**
 * The servers in the committed document, and the defaults of `BASE_URL_US` and `BASE_URL_CA`. The
 * hosts do not exist: an installation sets its own. RFC 2606 reserves `.example`, and Redocly's
 * recommended rules refuse `example.com`.
 */
export const defaultBaseUrls: Record<Region, string> = {
  us: 'https://us.org-api.example',
  ca: 'https://ca.org-api.example',
};

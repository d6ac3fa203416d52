import type { Region } from '#domain/contract/regions.ts';

/**
 * The servers that the committed document names, and the defaults of `BASE_URL_US` and
 * `BASE_URL_CA`. Never a host that exists: an installation sets its own. `.example` is reserved by
 * RFC 2606, and Redocly's recommended rules refuse `example.com`.
 */
export const defaultBaseUrls: Record<Region, string> = {
  us: 'https://us.org-api.example',
  ca: 'https://ca.org-api.example',
};

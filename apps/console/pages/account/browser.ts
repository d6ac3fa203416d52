/** What each browser's User-Agent holds; earlier ones win, since most of them name others too. */
const browsers = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
] as const;
const systems = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
] as const;

/**
 * A browser in a few words (`Firefox on Windows`), from what it says of itself; enough for its
 * person to know it again, and no proof of anything.
 */
export function describeBrowser(userAgent: string): string {
  const browser = browsers.find(([form]) => form.test(userAgent))?.[1];
  const system = systems.find(([form]) => form.test(userAgent))?.[1];
  if (browser === undefined) return userAgent.split(/[ /(]/)[0] || 'Unknown browser';
  return system === undefined ? browser : `${browser} on ${system}`;
}

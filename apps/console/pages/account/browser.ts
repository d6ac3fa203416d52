/** Texts in browsers' User-Agent headers; earlier ones win, because most contain others too. */
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
 * Returns a browser in a few words (`Firefox on Windows`), from its User-Agent, so that its person
 * recognizes it; it proves nothing.
 */
export function describeBrowser(userAgent: string): string {
  const browser = browsers.find(([form]) => form.test(userAgent))?.[1];
  const system = systems.find(([form]) => form.test(userAgent))?.[1];
  if (browser === undefined) return userAgent.split(/[ /(]/)[0] || 'Unknown browser';
  return system === undefined ? browser : `${browser} on ${system}`;
}

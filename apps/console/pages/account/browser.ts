/** Texts in User-Agent headers. The first match applies, because most headers contain several. */
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

/** Describes a browser by its User-Agent header, which can be false: `Firefox on Windows`. */
export function describeBrowser(userAgent: string): string {
  const browser = browsers.find(([form]) => form.test(userAgent))?.[1];
  const system = systems.find(([form]) => form.test(userAgent))?.[1];
  if (browser === undefined) return userAgent.split(/[ /(]/)[0] || 'Unknown browser';
  return system === undefined ? browser : `${browser} on ${system}`;
}

/** One version of the API, for the partners' changelog. */
interface Version {
  /** `info.version` of the OpenAPI document. A new read, event, field or code raises its second number. */
  version: string;
  /** What a partner or receiver can newly rely on, each in a sentence of Markdown. */
  changes: readonly string[];
}

/** The changelog of the API, newest version first. Clients of a version read every later one. */
export const versions: readonly [Version, ...Version[]] = [
  {
    version: '1.0.0',
    changes: [
      'Nine reads, with `ETag` and 304, `RateLimit` headers and twelve error codes.',
      'Seven event types, signed in the forms of Standard Webhooks and of `Service-Signature`, with 13 attempts.',
      'Bodies of 1,400 bytes or more in br or gzip.',
    ],
  },
];

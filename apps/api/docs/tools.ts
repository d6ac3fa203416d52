/** What the project has for partners and receivers beside the API, for the page and its Markdown. */
export interface Tool {
  id: string;
  heading: string;
  /** Markdown. */
  text: string;
  /** The title of the code, and the code: shell lines. */
  title: string;
  code: string;
}

/** Markdown. The repository names no address of its own: a release puts one into its charts. */
export const toolsText =
  'They are parts of `org-api`, the project of this service: support says where its releases are.';

export const tools: readonly Tool[] = [
  {
    id: 'clients',
    heading: 'Clients for TypeScript and Python',
    text:
      '`@org-api/client` runs on Node, Deno, Bun and at the edge, `org-api` on Python 3.9 and newer. Both wait as ' +
      'long as a 429 or 503 says, keep responses by their `ETag`, and never print a key. They are files of each ' +
      'release; `npm start` prints how a checkout installs them. The samples in TypeScript are for a project with ' +
      '`"type": "module"`: with `@types/node` for tsc, or as `.ts` on Node 22.18 and newer.',
    title: 'Install',
    code: 'npm install ./org-api-client-*.tgz\npip install ./org_api-*.whl',
  },
  {
    id: 'kits',
    heading: 'Receiver kits',
    text:
      '`@org-api/receiver` and `org-api-receiver` check the signature, ignore repeats, and apply the events of each ' +
      'seat and grant in order, in one transaction of your own database (PostgreSQL, MySQL or SQLite).',
    title: 'Install',
    code: 'npm install ./org-api-receiver-*.tgz\npip install ./org_api_receiver-*.whl',
  },
  {
    id: 'certify',
    heading: 'Try a receiver',
    text:
      '`listen` sends the events of a service on your machine to your receiver, and prints its responses. `certify` ' +
      'tries about thirty scenarios: a bad signature, an old timestamp, a repeat, two events in the wrong order, a ' +
      'redirect. It reports what failed, why it matters and how to fix it, and ends with an exit code for CI. With ' +
      '`--state-url` your receiver also reports what it applied; `--help` has the form.',
    title: 'In a checkout of org-api',
    code:
      'npm run tool -- listen --forward-to http://127.0.0.1:3000/ --secret-file FILE\n' +
      'npm run tool -- certify http://127.0.0.1:3000/ --secret-file FILE',
  },
];

/**
 * Why a URL or an address is refused: stable code → what is wrong and what its owner does about it.
 * The same sentences answer a registration and explain an attempt. They contain neither the URL nor
 * an address, so that they do not reveal what a name resolves to inside the network.
 */
export const refusals = {
  url_too_long: 'The URL is longer than 2,000 characters (as sent, percent-encoded): use a shorter one.',
  url_characters: 'The URL holds a space, a control character or a backslash: percent-encode it, or correct the URL.',
  url_form: 'The URL cannot be read: write it in full, like https://hooks.example.com/events.',
  url_scheme: 'The URL does not begin with https://: serve the receiver over TLS and use its https URL.',
  url_credentials:
    'The URL holds a user name or password: remove it, and check the signature to know that a post is ours.',
  url_fragment: 'The URL has a fragment (#…), which is never sent: remove it, or put it into the path or query.',
  url_port: 'Port 0 cannot be reached: use the port the receiver listens on.',
  url_host_form:
    'The host is written in an unusual way: use its plain name, or an address in its usual form, ' +
    'without a trailing dot.',
  url_host_local: 'The host is a name that only exists inside a network: use a name that public DNS resolves.',
  address_not_public: 'The host is an address that is not public: use a receiver that the internet can reach.',
  name_not_public:
    'DNS gives the host at least one address that is not public: let every A and AAAA record be a public address.',
} as const;

/** A code of the table above. */
export type RefusalCause = keyof typeof refusals;

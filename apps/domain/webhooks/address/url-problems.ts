/**
 * Why a URL or an address is rejected: a stable code, and a sentence with what is wrong and what
 * its owner can do. The sentences answer a registration and explain an attempt. They contain
 * neither the URL nor an address, so that they do not reveal what a name resolves to inside the
 * network.
 */
export const urlProblems = {
  url_too_long: 'The URL is longer than 2,000 characters when percent-encoded. Enter a shorter URL.',
  url_characters: 'The URL contains a space, a control character or a backslash. Percent-encode or remove it.',
  url_form: 'Enter a complete URL, for example https://hooks.example.com/events.',
  url_scheme: 'Enter a URL that starts with https://. The receiver must use TLS.',
  url_credentials: 'The URL contains a user name or password. Remove it, and verify signatures instead.',
  url_fragment: 'The URL contains a fragment (#…), which is never sent. Remove it, or move it to the path or query.',
  url_port: 'Port 0 cannot be reached. Enter the port of the receiver.',
  url_host_form:
    'The host is written in an unusual form. Enter its name, or its address in standard form, ' +
    'without a trailing dot.',
  url_host_local: 'The host name exists only inside a network. Enter a name that public DNS resolves.',
  address_not_public: 'The address of the host is not public. Enter a receiver that the internet can reach.',
  name_not_public: 'DNS returns an address for the host that is not public. Every A and AAAA record must be public.',
} as const;

/** A code of the table above. */
export type UrlProblem = keyof typeof urlProblems;

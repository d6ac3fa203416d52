import { array, bytes, number, type Signing, signAssertion } from '#test/authenticator.ts';
import { der, extension, makeCertificate, sequence } from '#test/certificates.ts';

/**
 * Attests a passkey as Android does (`android-key`), with a root of its own. Both certificates name
 * an address for their revocation list, which a verifier would fetch.
 */
export const certifiedBy =
  (revocationList: string): NonNullable<Signing['attest']> =>
  ({ privateKey, authData, clientDataHash }) => {
    // RFC 5280: CRLDistributionPoints, of one full name.
    const name = der(0x86, Buffer.from(revocationList));
    const crl = extension('551d1f', sequence(sequence(der(0xa0, der(0xa0, name)))));
    const root = makeCertificate({ subject: 'root', isAuthority: true, further: [crl] });
    const further = [crl, extension('2b06010401d679020111', keyDescription(clientDataHash))];
    const leaf = makeCertificate({ subject: 'passkey', issuer: root, privateKey, further });
    const chain = [leaf, root].map(({ cert }) => bytes(Buffer.from(cert.replace(/-----[^-]*-----|\s/g, ''), 'base64')));
    return {
      format: 'android-key',
      statement: [
        ['alg', number(-7)],
        ['sig', bytes(signAssertion(privateKey, authData, clientDataHash))],
        ['x5c', array(chain)],
      ],
    };
  };

/** Android's KeyDescription: versions, security levels, challenge, unique id, two empty lists. */
function keyDescription(challenge: Buffer): Buffer {
  const one = der(0x02, Buffer.from([1]));
  const software = der(0x0a, Buffer.from([0]));
  const empty = der(0x04, Buffer.alloc(0));
  return sequence(one, software, one, software, der(0x04, challenge), empty, sequence(), sequence());
}

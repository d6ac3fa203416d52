import { createSocket } from 'node:dgram';

/** Whether this machine has a route to the internet over IPv4; never throws. */
export type HasRoute = () => Promise<boolean>;

/** Root name servers, of two operators: well known, never a receiver, and their addresses stay. */
const wellKnown = ['198.41.0.4', '193.0.14.129'];

/**
 * Asks the kernel for a route by connecting a UDP socket, which sends no packet: the local
 * routing table answers at once. An error of a TCP connection may as well be what a router
 * near the receiver reported.
 *
 * `addresses` replace the well-known ones; one that has a route is enough, as a single network may
 * be cut off on purpose.
 */
export async function hasRoute(addresses: readonly string[] = wellKnown): Promise<boolean> {
  const found = await Promise.all(addresses.map(isRouted));
  return found.includes(true);
}

function isRouted(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const end = (routed: boolean) => {
      socket.close();
      resolve(routed);
    };
    // A socket that cannot be had says it by this event: then we could not have connected either.
    socket.once('error', () => end(false));
    socket.connect(53, address, (error?: Error) => {
      socket.removeAllListeners('error');
      socket.on('error', () => {});
      end(!error);
    });
  });
}

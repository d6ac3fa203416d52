import { createSocket } from 'node:dgram';

/** Returns whether this machine has a route to the internet over IPv4; never throws. */
export type HasRoute = () => Promise<boolean>;

/** Root name servers of two operators: well known, stable, and never receivers. */
const wellKnown = ['198.41.0.4', '193.0.14.129'];

/**
 * Asks the kernel for a route by connecting a UDP socket, which sends no packet: an error of a TCP
 * connection may come from a router near the receiver. One routed address is enough, because a
 * single network may be blocked on purpose.
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
    // A socket that cannot be created emits this event. Then no connection was possible either.
    socket.once('error', () => end(false));
    socket.connect(53, address, (error?: Error) => {
      socket.removeAllListeners('error');
      socket.on('error', () => {});
      end(!error);
    });
  });
}

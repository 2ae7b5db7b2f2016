import type { LocalServer } from "../../../http/local-servers.ts";

/** The address that opens the studio with the token. Browsers never send the part after `#` to a server. */
export function addressWithToken({ url, token }: LocalServer): string {
  return `${url}/#token=${token}`;
}

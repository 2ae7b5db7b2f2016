import type { LocalServer } from "../../../http/local-servers.ts";

/** The address that opens the studio for whoever has the token; a browser sends nothing of what follows the `#`. */
export function addressWithToken({ url, token }: LocalServer): string {
  return `${url}/#token=${token}`;
}

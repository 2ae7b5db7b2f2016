import type { ReactNode } from "react";
import { useConnection } from "../request/client.ts";

/** Shows that the server is unreachable, as long as it is. */
export function ConnectionBanner(): ReactNode {
  const { lost, returns } = useConnection();
  return (
    // Rendered before the message, as screen readers only announce changes of existing elements.
    <output className={lost ? "connection connection-lost small" : "connection"}>
      {lost && "The connection to the server is lost. Trying again …"}
      {!lost && returns > 0 && <span className="only-for-readers">Connected again.</span>}
    </output>
  );
}

import type { ReactNode } from "react";
import { useConnection } from "../request/client.ts";

/** Says that the server cannot be reached, for as long as that is so. */
export function ConnectionBanner(): ReactNode {
  const { lost, returns } = useConnection();
  return (
    // The element is there before the message, or screen readers would not say it.
    <output className={lost ? "connection connection-lost small" : "connection"}>
      {lost && "The connection to the server is lost. Trying again …"}
      {!lost && returns > 0 && <span className="only-for-readers">Connected again.</span>}
    </output>
  );
}

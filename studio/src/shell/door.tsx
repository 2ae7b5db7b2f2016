import { type FormEvent, type ReactNode, useState } from "react";
import { ClientError } from "skein/client";
import { keepToken } from "../request/client.ts";
import { Shown } from "../request/shown.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";

/** Asks for an API token where the server wants one; otherwise it is open. */
export function Door({ onToken, children }: { readonly onToken: () => void; readonly children: ReactNode }): ReactNode {
  const client = useClient();
  const me = useRequest("me", (signal) => client.me({ signal }));
  const [token, setToken] = useState("");
  const refused = me.error instanceof ClientError && me.error.status === 401;
  if (!refused) {
    return (
      <Shown requested={me} what="the studio">
        {() => children}
      </Shown>
    );
  }
  const enter = (event: FormEvent): void => {
    event.preventDefault();
    keepToken(token.trim());
    onToken();
    me.reload();
  };
  return (
    <main className="door">
      <h1>Skein studio</h1>
      <form onSubmit={enter}>
        <label>
          API token
          <input
            className="field"
            type="password"
            autoComplete="off"
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {me.error !== null && <p role="alert">{me.error.message}</p>}
        <button type="submit" className="button button-primary" disabled={token.trim() === ""}>
          Enter
        </button>
      </form>
    </main>
  );
}

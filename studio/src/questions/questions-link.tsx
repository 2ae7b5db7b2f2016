import type { ReactNode } from "react";
import { addressOf } from "../shell/route.ts";
import { countOf, useInbox } from "./use-inbox.ts";

/** A link to the questions page, with the number of open questions. */
export function QuestionsLink({ here }: { readonly here: boolean }): ReactNode {
  const { data } = useInbox();
  const count = data === null ? "0" : countOf(data);
  return (
    <a href={addressOf({ page: "questions" })} aria-current={here ? "page" : undefined}>
      Questions
      {count !== "0" && (
        <>
          {" "}
          <span className="questions-count">
            {count}
            <span className="only-for-readers"> waiting</span>
          </span>
        </>
      )}
    </a>
  );
}

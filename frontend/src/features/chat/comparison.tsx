import { Check } from "lucide-react";
import type { ComponentProps } from "react";
import { Button } from "@/ui/button";
import { nameOfAdapter } from "./adapters";
import { useChatStore } from "./chat-store";
import { ReplyView } from "./reply-view";
import type { Reply } from "./tree";

type Props = ComponentProps<typeof ReplyView> & { beside: Reply };

const alone = { position: 1, count: 1, previousId: null, nextId: null };

/** Two replies to one prompt, the earlier first; one of them is chosen to go on with. */
export function Comparison({ beside, reply, ...props }: Props) {
  const { choose } = useChatStore.getState();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields
    <div role="group" aria-label="Comparison" className="grid gap-4 md:grid-cols-2">
      {[beside, reply].map((each, index) => (
        <section
          key={each.id}
          aria-label={`Reply ${index + 1}`}
          className="min-w-0 space-y-3 rounded-xl border bg-card p-4"
        >
          <div className="flex min-h-9 flex-wrap items-center justify-between gap-2">
            <h3 className="font-medium text-sm [overflow-wrap:anywhere]">{askedOf(each)}</h3>
            <Button
              size="sm"
              intent="secondary"
              disabled={props.isBusy}
              onClick={() => choose(each.id)}
            >
              <Check aria-hidden /> Go on with this
            </Button>
          </div>
          <ReplyView {...props} {...alone} reply={each} />
        </section>
      ))}
    </div>
  );
}

function askedOf({ run }: Reply): string {
  const adapter = run?.asked.settings.adapter;
  return adapter === undefined ? "Without a choice" : nameOfAdapter(adapter);
}

import { Play, RefreshCw } from "lucide-react";
import { memo } from "react";
import { ApiError } from "@/api/errors";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import { ErrorNote } from "@/ui/error-note";
import { IconButton } from "@/ui/icon-button";
import { AfterCrash } from "./after-crash";
import type { Asked } from "./asking";
import { BranchSwitch, type Place, placeOf } from "./branch-switch";
import { useChatStore } from "./chat-store";
import { CompareButton } from "./compare-button";
import { focusComposer } from "./composer";
import { DeleteButton } from "./delete-button";
import { LazyMarkdown } from "./lazy-markdown";
import { ReplyFacts } from "./reply-facts";
import { Thinking } from "./thinking";
import type { Fault, Reply } from "./tree";
import { Waiting } from "./waiting";

type Props = Place & {
  reply: Reply;
  conversationId: string;
  asked: Asked | null;
  /** Why the model can't be asked about this conversation; null if it can. */
  whyNotAsked: string | null;
  /** A reply is streaming somewhere in this conversation. */
  isBusy: boolean;
  isLast: boolean;
};

export const ReplyView = memo(function ReplyView(props: Props) {
  const { reply, conversationId } = props;
  const running = useChatStore((state) => state.running[conversationId]);
  const isRunning = running?.id === reply.id;
  const { content, reasoning, reasoningSeconds } = isRunning ? running : reply;
  return (
    <article aria-label="Reply" aria-busy={isRunning} data-role="assistant" className="space-y-3">
      {reasoning && (
        <Thinking text={reasoning} seconds={reasoningSeconds} isThinking={isRunning && !content} />
      )}
      {content && <LazyMarkdown text={content} isStreaming={isRunning} />}
      {isRunning && !content && !reasoning && <Waiting model={reply.model} />}
      {!isRunning && <Ending {...props} />}
    </article>
  );
});

function Ending({ reply, asked, whyNotAsked, isBusy, isLast, ...place }: Props) {
  const { regenerate, continueReply } = useChatStore.getState();
  const { outcome, content } = reply;
  const isDisabled = isBusy || asked === null;
  const cannotAsk = isDisabled || whyNotAsked !== null;
  // The composer says it, too, under that name.
  const why = whyNotAsked === null ? undefined : "why-not-send";
  const wasCut =
    outcome.state === "finished" ? outcome.reason === "length" : outcome.state !== "streaming";
  const askAgain = () => {
    if (!asked || cannotAsk) return;
    void regenerate(reply.id, asked);
    focusComposer();
  };
  const goOn = () => {
    if (!asked) return;
    void continueReply(reply.id, asked);
    focusComposer();
  };
  return (
    <>
      {outcome.state === "failed" && (
        <ErrorNote
          error={errorOf(outcome.fault)}
          title={content ? "The reply broke off" : "No reply came"}
          actions={
            <>
              <Button
                size="sm"
                intent="secondary"
                disabled={cannotAsk}
                aria-describedby={why}
                onClick={askAgain}
              >
                <RefreshCw aria-hidden /> Retry
              </Button>
              {isLast && <AfterCrash model={reply.model} fault={outcome.fault} />}
            </>
          }
        />
      )}
      {outcome.state === "streaming" && (
        <p className="text-muted-foreground text-sm">Being written in another tab…</p>
      )}
      {!content && (outcome.state === "stopped" || outcome.state === "interrupted") && (
        <p className="text-muted-foreground text-sm italic">No text came before the end.</p>
      )}
      <div className="flex flex-wrap items-center gap-x-1 gap-y-1">
        <BranchSwitch {...placeOf(place)} noun="reply" isDisabled={isBusy} />
        {content && <CopyButton text={content} label="Copy reply" />}
        <IconButton
          size="icon-sm"
          label="Regenerate"
          hint={whyNotAsked ?? "Another reply; this one is kept"}
          disabled={isDisabled}
          aria-disabled={cannotAsk}
          aria-describedby={why}
          className="aria-disabled:opacity-50"
          onClick={askAgain}
        >
          <RefreshCw aria-hidden />
        </IconButton>
        {content && <CompareButton reply={reply} asked={asked} isDisabled={cannotAsk} />}
        <DeleteButton messageId={reply.id} noun="reply" isDisabled={isBusy} />
        {isLast && content && wasCut && (
          <Button
            size="sm"
            intent="secondary"
            disabled={cannotAsk}
            aria-describedby={why}
            onClick={goOn}
          >
            <Play aria-hidden /> Continue
          </Button>
        )}
        <div className="ml-2 min-w-0 max-md:ml-0 max-md:w-full">
          <ReplyFacts reply={reply} />
        </div>
      </div>
    </>
  );
}

function errorOf({ message, code, evidence, nextStep }: Fault): ApiError {
  return new ApiError({
    message,
    code,
    evidence: evidence ?? undefined,
    nextStep: nextStep ?? undefined,
  });
}

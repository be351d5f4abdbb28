// The checkable criteria of a turn, and how far one reply meets each: a level with its quote, or why there is none.

import { quoteOf } from "./evidence";
import { level, words } from "./format";
import { type Criterion, DIMENSIONS, type Judgement, type Reply } from "./turns";
import { NAMES } from "./WeightsBar";

interface CriteriaProps {
  readonly criteria: readonly Criterion[];
  readonly reply: Reply | undefined;
}

export function Criteria({ criteria, reply }: CriteriaProps) {
  return (
    <>
      {DIMENSIONS.map((dimension) => {
        const own = criteria.filter((criterion) => criterion.dimension === dimension);
        if (own.length === 0) return null;
        return (
          <section class="dimension" key={dimension}>
            <h4>
              <span class={`swatch ${dimension}`} aria-hidden="true" />
              {NAMES[dimension]}
              <span class="quiet">{level(reply?.score?.byDimension[dimension] ?? null)}</span>
            </h4>
            <ul class="criteria">
              {own.map((criterion) => (
                <CriterionLine key={criterion.id} criterion={criterion} reply={reply} />
              ))}
            </ul>
          </section>
        );
      })}
    </>
  );
}

function CriterionLine({ criterion, reply }: { readonly criterion: Criterion; readonly reply: Reply | undefined }) {
  const judgement = reply?.score?.judgements.find((candidate) => candidate.criterionId === criterion.id);
  const quote = reply ? quoteOf(reply.text, judgement?.evidence ?? null) : null;
  return (
    <li class="criterion">
      <span class="criterion-text">
        {criterion.polarity === "avoid" && <span class="tag">avoid</span>}
        {criterion.text}
        {quote !== null && <q class="quote">{quote}</q>}
        {judgement?.isQuoteUnfound && <span class="quiet">quote not found in the reply</span>}
      </span>
      <Level judgement={judgement} />
    </li>
  );
}

function Level({ judgement }: { readonly judgement: Judgement | undefined }) {
  if (!judgement) return <span class="quiet">not graded</span>;
  if (judgement.level === null) {
    const reason = judgement.noneReason === "" ? "" : `: ${words(judgement.noneReason)}`;
    return <span class="quiet">not graded{reason}</span>;
  }
  return (
    <span class="level">
      <span class="level-bar" aria-hidden="true">
        <span style={{ inlineSize: `${Math.round(judgement.level * 100)}%` }} />
      </span>
      <strong>{level(judgement.level)}</strong>
    </span>
  );
}

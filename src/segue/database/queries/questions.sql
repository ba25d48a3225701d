-- columns: question
-- A question as it stands.
id, kind, body, lane, person, approvers, words, choices, allows, session, turn, agent, deadline, state, coalesce(answer, '') as answer, answered_by

-- name: add_question
-- Something is asked of a person in a lane; nothing comes back if the turn has asked it before.
insert into questions (id, lane, person, kind, body, asked, deadline, session, turn, call, approvers, words, choices, allows, agent)
values (:question, :lane, :person, :kind, :body, :at, :deadline, :session, :turn, :call, :approvers, :words, :choices, :allows, :agent)
on conflict (session, turn, call) where session is not null do nothing returning id;

-- name: end_questions
-- What Segue itself asked a person in a lane before is asked no more.
update questions set state = 'withdrawn', answered = :at
where lane = :lane and person = :person and state = 'open' and session is null;

-- name: last_question
-- What a person was asked last in a lane.
select {question} from questions where lane = :lane and person = :person order by asked desc, id desc limit 1;

-- name: question
-- One question.
select {question} from questions where id = :question;

-- name: question_of_call
-- What a turn has asked under a key, in whichever attempt.
select {question} from questions where session = :session and turn = :turn and call = :call;

-- name: open_in_lane
-- What is asked in a lane, the oldest first.
select {question} from questions where lane = :lane and state = 'open' order by asked, id limit :count;

-- name: open_to_person
-- What is asked of a person, the oldest first.
select {question} from questions where person = :person and state = 'open' and deadline >= :at order by asked, id limit :count;

-- name: open_to_approvers
-- What is asked of those who may answer for others, the oldest first.
select {question} from questions where state = 'open' and approvers <> '[]' and deadline >= :at order by asked, id limit :count;

-- name: asked_by_message
-- The keys of what was sent as a message.
select key from deliveries where message = :message and address = :address order by id desc limit 5;

-- name: asked_under_way
-- The keys of messages that are being sent somewhere: they may be there, without a record of their ids.
select key from deliveries where address = :address and sent is null and dead is null and message is null and doubtful > 0
order by id limit 5;

-- name: settle_question
-- A question comes to its end; nothing comes back if it had before.
update questions set state = :state, answer = :answer, answered_by = :by, answered = :at
where id = :question and state = 'open' and (deadline >= :at or cast(:state as text) <> 'answered') returning {question};

-- name: questions_over
-- Questions whose time is over.
select {question} from questions where answered is null and deadline < :at order by deadline limit :count;

-- name: questions_of_turn
-- What a turn asks and nobody has answered.
select {question} from questions where session = :session and turn = :turn and state = 'open' order by asked, id;

-- name: wait_for_question
-- A holder of the turn that asks waits for the answer, and does nothing else.
update questions set epoch = :epoch where id = :question and state = 'open';

-- name: count_questions
-- How much a person is asked.
select count(*) from questions where person = :person and state = 'open' and session is not null;

-- name: copies_of_question
-- The messages that show a question, but for those in a place that other people came to read since.
select d.id, d.address from deliveries d where d.key >= :first and d.key < :last and d.message is not null
and not exists (select 1 from addresses w where w.key = d.address and w.afresh > d.accepted) order by d.id;

-- name: amend_delivery
-- Another text for a message that was sent.
insert into deliveries (key, account, address, session, turn, entry, text, answers, choices, files, only_for, accepted, due, offered,
  message)
select :key, account, address, session, turn, 0, :text, '[]', '[]', '[]', only_for, :at, {now}, {now}, message
from deliveries where id = :id on conflict (key) do nothing;

-- name: clear_questions
-- The words of what a turn asked are forgotten; it is asked no more.
update questions set words = '', body = '', choices = '[]', answer = '', answered_by = '', allows = '',
  state = case when state = 'open' then 'withdrawn' else state end, answered = coalesce(answered, :at)
where session = :session and turn = :turn;

-- name: move_questions
-- What one of two persons who are one is asked, the other is asked.
update questions set person = :to where person = :person and state = 'open';

-- name: move_questions_back
-- A merge undone: what is asked in somebody's session is asked of them.
update questions set person = :gone where person = :kept and session in (select id from sessions where owner = :gone);

-- name: end_own_questions
-- What Segue itself asked a person is asked no more, wherever.
update questions set state = 'withdrawn', answered = :at where person = :person and state = 'open' and session is null;

-- name: allow
-- Something is allowed to a person's agent from now on.
insert into permissions (id, person, agent, what, session, since) values (:id, :person, :agent, :what, :session, :at);

-- name: allowed
-- Whether something is allowed to an agent in a session of a person's.
select 1 from permissions where person = :person and until is null and agent = :agent and what = :what
  and (session is null or session = :session) limit 1;

-- name: permissions
-- All that a person allowed for always, or for a session, the oldest first.
select id, agent, what, session, since from permissions where person = :person and until is null order by since, id limit :count;

-- name: end_permission
-- Something is allowed no more.
update permissions set until = :at where id = :id and person = :person and until is null returning id;

-- name: end_permissions_since
-- A merge undone: nobody knows which of the two allowed something meanwhile, so it is asked again.
update permissions set until = :at where person = :person and until is null and since >= :since;

-- name: turn_asked
-- Whether a turn has asked anything, in whichever attempt.
select 1 from questions where session = :session and turn = :turn limit 1;

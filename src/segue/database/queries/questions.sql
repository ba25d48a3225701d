-- name: add_question
-- Something is asked of a person in a lane.
insert into questions (id, lane, person, kind, body, asked, deadline)
values (:question, :lane, :person, :kind, :body, :at, :deadline);

-- name: end_questions
-- What a person was asked in a lane before is asked no more.
update questions set answer = :answer, answered = :at where lane = :lane and person = :person and answered is null;

-- name: last_question
-- What a person was asked last in a lane.
select id, kind, body, deadline, answer from questions where lane = :lane and person = :person
order by asked desc, id desc limit 1;

-- name: answer_question
-- A question is answered; nothing comes back if it was before.
update questions set answer = :answer, answered = :at where id = :question and answered is null returning id;

-- name: expire_questions
-- Questions whose time is over.
update questions set answer = 'expired', answered = :at where answered is null and deadline < :at;

# The embedding function as an image, for the parameter EmbedImageUri of template.yaml: where the layer of the model would be too large,
# or functions from images are the rule.
#
# NOT BUILT WHERE THIS PROJECT IS MADE: there is no container engine there. What it puts together is tested as layers.
#
#   make build ARCHITECTURE=arm64
#   docker build --platform linux/arm64 --file infra/deploy/embed.Dockerfile --tag pulse-kg-embed .
FROM public.ecr.aws/lambda/python:3.12

COPY build/layers/core/ build/layers/edge/ build/layers/model/ /opt/
COPY functions/embed/handler.py ${LAMBDA_TASK_ROOT}/

ENV PULSE_KG_MODEL_DIR=/opt/model

CMD ["handler.handler"]
